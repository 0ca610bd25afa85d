"""Every release of ONNX Runtime against every suite: ``python -m matrix`` in ``tests/``."""
