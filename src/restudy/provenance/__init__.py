"""Fingerprints of code, configuration, data and environment, and the facts embedded in outputs."""

from restudy.provenance.fingerprint import Node, fingerprint, forget, ingredients
from restudy.provenance.stamp import Facts, read_stamp, stamp_bytes, verify

__all__ = ["Facts", "Node", "fingerprint", "forget", "ingredients", "read_stamp", "stamp_bytes", "verify"]
