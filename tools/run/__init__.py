"""A job: its options, how it is executed or forecast, and the records it leaves."""
