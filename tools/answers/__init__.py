"""What is asked of an answer: which rows are shown, where it is written, whether there is room."""
