"""Fits parameters of a model to observations."""
