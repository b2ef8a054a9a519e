"""One file per format in which a list leaves or enters."""
