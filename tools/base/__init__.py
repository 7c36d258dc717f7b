"""What several commands share: options, output, progress bars, log, signals, and where a program is found."""
