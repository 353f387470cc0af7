"""Run a model's tool-calling loop in a notebook, and see every request, response, tool call and token."""

from __future__ import annotations

__version__ = "0.1.0"
