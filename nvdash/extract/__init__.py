"""What a framework's released source declares (a maintainer's tool)."""
