"""Disks that no fit has seen: drawing, simulation, files and scores."""
