"""Clocks of a process: of the stages of a job, of waiting for compiled code, of what threads are busy with."""
