"""Damaged, locked, newer and foreign files are told in words."""

import subprocess
import sys
import threading

import duckdb
import pytest

from nvdash.store import adding, connection, failure, migrations, runs, upkeep
from nvdash.store.columns import COLUMNS
from nvdash.store.failure import StoreError


def test_a_missing_store_is_created_with_the_columns_of_the_code(store):
    assert runs.count() == 0
    with duckdb.connect(str(store), read_only=True) as database:
        query = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'runs' ORDER BY column_index"
        assert database.execute(query).fetchall() == [(column.name, column.type) for column in COLUMNS]
        for table, columns in adding.SIDE_TABLES.items():
            query = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index"
            assert dict(database.execute(query, [table]).fetchall()) == columns


def test_the_file_keeps_the_format_that_older_duckdb_reads(store):
    runs.count()
    with duckdb.connect(str(store), read_only=True) as database:
        (tags,) = database.execute("SELECT tags FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()[0]
    assert "v1.5" in str(tags)


@pytest.mark.parametrize("content", [b"", b"not a database" * 1000, b"\x00" * 20_000])
def test_a_damaged_file_is_refused_in_words(store, content):
    store.write_bytes(content)
    with pytest.raises(StoreError) as refusal:
        runs.count()
    assert str(store) in str(refusal.value)
    assert refusal.value.hint


def test_a_file_cut_in_the_middle_is_refused_in_words(store, new_run):
    adding.add(new_run(output_tok_s=float(n)) for n in range(5000))
    whole = store.read_bytes()
    store.write_bytes(whole[: len(whole) // 10])
    with pytest.raises(StoreError):
        runs.find(limit=None)


def test_a_damaged_file_names_the_newest_backup(store):
    runs.count()
    copy = upkeep.backup()
    store.write_bytes(b"broken" * 1000)
    with pytest.raises(StoreError, match=copy.name):
        runs.count()


def test_a_newer_store_is_refused_and_left_alone(store):
    runs.count()
    with duckdb.connect(str(store)) as database:
        database.execute("UPDATE meta SET schema_version = 99")
    with pytest.raises(StoreError, match="schema 99"):
        runs.count()
    with pytest.raises(StoreError, match="update nvdash"), connection.writing():
        pass


def test_a_database_of_somebody_else_is_refused(store):
    with duckdb.connect(str(store)) as database:
        database.execute("CREATE TABLE theirs (x INTEGER)")
    with pytest.raises(StoreError, match="theirs"):
        runs.count()


HOLD = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(1, flush=True); sys.stdin.read()"


def test_a_locked_store_is_told_after_the_wait(store, monkeypatch):
    runs.count()
    monkeypatch.setattr(connection, "WAIT_S", 0.2)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        holder.stdout.readline()
        with pytest.raises(StoreError, match="locked"):
            runs.count()
    finally:
        holder.communicate()
    assert runs.count() == 0


def test_a_busy_gate_is_told_after_the_wait(store, monkeypatch):
    from filelock import FileLock

    runs.count()
    monkeypatch.setattr(connection, "WAIT_S", 0.1)
    with FileLock(f"{store}.gate"), pytest.raises(StoreError, match="locked"):
        runs.count()


def test_an_address_as_store_is_refused(monkeypatch):
    monkeypatch.setenv("NVDASH_STORE", "ducklake:postgres:host=db")
    with pytest.raises(StoreError, match="ducklake"):
        runs.count()


def test_an_error_inside_a_write_leaves_nothing_behind(store):
    with pytest.raises(ZeroDivisionError), connection.writing() as database:
        database.execute("INSERT INTO audit VALUES (NULL, 'withdraw', 'x', 'y')")
        raise ZeroDivisionError
    assert upkeep.status()["rows"]["audit"] == 0


def test_threads_read_and_write_at_once_without_losing_a_run(store, new_run):
    failures = []

    def work(number):
        try:
            for step in range(4):
                adding.add([new_run(output_tok_s=float(number * 100 + step + 1))])
                runs.count()
        except Exception as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert runs.count() == 24


def test_the_revision_grows_with_every_write_and_only_then(store, new_run):
    first = runs.revision()
    runs.find()
    assert runs.revision() == first
    adding.add([new_run()])
    assert runs.revision() == first + 1


def test_an_older_store_is_backed_up_and_migrated(store, monkeypatch, new_run):
    steps = migrations.steps()
    monkeypatch.setattr(migrations, "steps", lambda: steps[:1])
    adding.add([new_run()])
    monkeypatch.setattr(migrations, "steps", lambda: steps)
    done = upkeep.migrate()
    assert (done["from"], done["to"]) == (1, len(steps))
    (backup,) = store.parent.glob("*.backup-*")
    assert runs.find()[0]["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    with duckdb.connect(str(backup), read_only=True) as copy:
        assert copy.execute("SELECT schema_version, (SELECT count(*) FROM runs) FROM meta").fetchall() == [(1, 1)]


def test_a_step_that_fails_changes_nothing(store, tmp_path, monkeypatch, new_run):
    adding.add([new_run()])
    steps = [*migrations.steps(), tmp_path / "0099_bad.sql"]
    steps[-1].write_text("ALTER TABLE runs ADD COLUMN note VARCHAR; SELECT * FROM nowhere")
    monkeypatch.setattr(migrations, "steps", lambda: steps)
    with pytest.raises(StoreError, match="nowhere"):
        runs.count()
    monkeypatch.undo()
    monkeypatch.setenv("NVDASH_STORE", str(store))
    assert runs.count() == 1


def test_a_backup_never_overwrites_a_file(store, tmp_path):
    runs.count()
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(StoreError, match="does not exist yet"):
        upkeep.backup(tmp_path / "taken")
    assert (tmp_path / "taken").read_text() == "mine"


def test_maintenance_reports_side_rows_without_a_run(store, new_run):
    adding.add([new_run()])
    assert set(upkeep.maintain()["orphans"].values()) == {0}
    with connection.writing() as database:
        database.execute("INSERT INTO kernels VALUES ('gone', 'k', 1, 1.0, 1.0)")
    assert upkeep.maintain()["orphans"]["kernels"] == 1


def test_the_wait_is_named_in_the_refusal(store):
    assert f"{failure.WAIT_S:.0f} s" in str(failure.busy(store))
