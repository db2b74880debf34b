"""What goes into a Lambda's package, and how it is staged: `python -m ops.build`."""
