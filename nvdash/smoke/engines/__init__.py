"""One adapter per engine: `run(spec, phases) -> facts`, imported by a case under the engine's own interpreter."""
