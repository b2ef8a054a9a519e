"""Read models for every front end: pure, without a toolkit, cheap to import."""
