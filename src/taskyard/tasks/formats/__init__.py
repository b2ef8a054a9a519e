"""Export and import formats of a list, one module per format."""
