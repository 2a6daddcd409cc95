"""Parameter studies: their points, the folder of their results, and the sweep."""
