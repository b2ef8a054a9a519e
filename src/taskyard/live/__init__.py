"""What screens look at: snapshots of lists and jobs (`taskyard.view`), kept up to date by one thread."""
