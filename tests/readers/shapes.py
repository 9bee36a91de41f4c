"""What tests of odd shapes of files ask of a reading."""


def values(run, *names):
    return tuple(run.get(name) for name in names)


def asked(reading):
    return {gap.field for gap in reading.missing}
