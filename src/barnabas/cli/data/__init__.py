"""What the commands that move data share: reading lines, printing records, loads for performance tests."""
