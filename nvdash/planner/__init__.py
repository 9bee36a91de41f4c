"""Which runs should be made next, as scripts: the four configurations on one backend, matched by construction."""
