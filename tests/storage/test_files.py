import gzip
import io
import os
import stat
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from threading import Thread

import pytest
import zstandard

from setaug.errors import FileError
from setaug.storage import BROKEN_ARCHIVE, check_outputs, display_name, kind_of, open_again, open_input, open_output

CONTENT = "Ünï©ødé\r\n\x00".encode() * 1000
SUFFIXES = ["", ".gz", ".zst", ".GZ"]


def standard_input(monkeypatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def write(path, content: bytes = CONTENT) -> None:
    with open_output(path) as stream:
        stream.write(content)


def write_and_fail(path, error: type[BaseException], first=lambda: None) -> None:
    with open_output(path) as stream:
        stream.write(CONTENT)
        first()
        raise error


def read(path) -> bytes:
    with open_input(path) as stream:
        return stream.read()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", "jsonl"),
        ("a.ndjson", "jsonl"),
        ("a.json", "jsonl"),
        ("A.JSONL.GZ", "jsonl"),
        ("a.csv.zst", "csv"),
        ("dir.csv/a.b.tsv", "tsv"),
        ("a.parquet", "parquet"),
        ("-", "jsonl"),
    ],
)
def test_the_kind_of_file_shows_in_its_name(name, kind):
    assert kind_of(name) == kind_of(Path(name)) == kind


@pytest.mark.parametrize("name", ["a", "a.txt", "a.gz", "a.txt.gz", "a.csv.zip", "csv", ".csv", ".", ""])
def test_an_unknown_kind_of_file_is_named(name):
    with pytest.raises(
        FileError, match="cannot infer the file format from the name; expected one of the suffixes"
    ) as caught:
        kind_of(name)
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)


def test_messages_call_a_file_by_its_name():
    assert display_name("some/where/a.csv") == "a.csv"
    assert display_name("-") == "standard input"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_was_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"a.bin{suffix}"
    write(path)
    assert read(path) == read(str(path)) == CONTENT
    assert names_in(tmp_path) == [path.name]


def test_files_are_compressed_by_their_suffix(tmp_path):
    for suffix in SUFFIXES:
        write(tmp_path / f"a{suffix}")
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == CONTENT
    assert gzip.decompress((tmp_path / "a.GZ").read_bytes()) == CONTENT
    unpacked = zstandard.ZstdDecompressor().stream_reader((tmp_path / "a.zst").read_bytes()).read()
    assert unpacked == CONTENT


def test_files_in_several_frames_are_read_whole(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    pack = zstandard.ZstdCompressor().compress
    (tmp_path / "a.zst").write_bytes(pack(b"one ") + pack(b"two"))
    assert read(tmp_path / "a.gz") == read(tmp_path / "a.zst") == b"one two"


def test_frames_that_hold_nothing_are_passed_over(tmp_path):
    pack = zstandard.ZstdCompressor().compress
    skippable = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"
    (tmp_path / "a.zst").write_bytes(skippable + pack(b"one ") + pack(b"") + skippable + pack(b"two") + skippable)
    assert read(tmp_path / "a.zst") == b"one two"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_can_be_read_in_small_pieces(tmp_path, suffix):
    write(tmp_path / f"a{suffix}")
    with open_input(tmp_path / f"a{suffix}") as stream:
        assert b"".join(iter(lambda: stream.read(7), b"")) == CONTENT


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_an_archive_cut_off_anywhere_is_noticed(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write(path)
    whole = path.read_bytes()
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(BROKEN_ARCHIVE):
            read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_content_gives_the_same_bytes(tmp_path, monkeypatch, suffix):
    write(tmp_path / f"one{suffix}")
    monkeypatch.setattr("time.time", lambda: 1e9)
    write(tmp_path / f"two{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, suffix, error):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(error):
        write_and_fail(path, error)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == [path.name]


def test_an_error_leaves_no_file_where_there_was_none(tmp_path):
    with pytest.raises(RuntimeError):
        write_and_fail(tmp_path / "a", RuntimeError)
    assert names_in(tmp_path) == []


def test_a_temporary_file_that_is_gone_hides_no_error(tmp_path):
    with pytest.raises(RuntimeError):
        write_and_fail(tmp_path / "a", RuntimeError, lambda: [path.unlink() for path in tmp_path.iterdir()])
    assert names_in(tmp_path) == []


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with open_output(path) as stream:
        stream.write(CONTENT)
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == CONTENT


def test_a_new_file_has_the_usual_rights(tmp_path):
    write(tmp_path / "a")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_link_is_kept_and_its_target_written(tmp_path):
    for name in ("old", "new"):
        target, link = tmp_path / f"{name}.target", tmp_path / f"{name}.link"
        link.symlink_to(target)
    (tmp_path / "old.target").write_bytes(b"old")
    for name in ("old", "new"):
        write(tmp_path / f"{name}.link", b"new")
        assert (tmp_path / f"{name}.link").is_symlink()
        assert (tmp_path / f"{name}.target").read_bytes() == b"new"
    assert names_in(tmp_path) == ["new.link", "new.target", "old.link", "old.target"]


def test_a_device_stays_a_device():
    write(os.devnull)
    assert Path(os.devnull).is_char_device()
    with pytest.raises(RuntimeError):
        write_and_fail(os.devnull, RuntimeError)
    assert Path(os.devnull).is_char_device()


def test_a_named_pipe_is_written_to_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"through")
    reader.join(timeout=600)
    assert found == [b"through"]
    assert names_in(tmp_path) == ["pipe"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="the system has no /dev/fd")
def test_a_pipe_without_a_name_is_written_to_directly():
    reading, writing = os.pipe()
    try:
        write(f"/dev/fd/{writing}", b"through")
        assert os.read(reading, 100) == b"through"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="the system has no /dev/fd")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"])
def test_what_an_open_file_holds_already_is_kept(name, tmp_path):
    place = tmp_path / "all"
    place.write_bytes(b"before\n")
    code = f"from setaug.storage import open_output\nwith open_output({name!r}) as stream: stream.write(b'more\\n')"
    with place.open("ab") as stream:  # as in a shell: >> all
        for _ in range(2):
            subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert place.read_bytes() == b"before\nmore\nmore\n"
    assert names_in(tmp_path) == ["all"]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="the system has no /dev/shm")
def test_files_in_shared_memory_are_ordinary_files():
    assert kind_of("/dev/shm/train.csv.gz") == "csv"
    with pytest.raises(FileError, match="cannot infer the file format"):
        kind_of("/dev/shm/train")
    assert kind_of("/dev/fd/3") == kind_of("/dev/null") == "jsonl"
    with pytest.raises(FileError, match="the output would replace the input"):
        check_outputs(["/dev/shm/in.jsonl"], ["/dev/shm/in.jsonl"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_disk_is_reported():
    with pytest.raises(FileError, match="cannot write /dev/full: No space left on device"):
        write("/dev/full")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FileError, match=r"cannot write .*: it is a folder\."):
        write(tmp_path)
    with pytest.raises(FileError, match=r"cannot read .*: Is a directory\."):
        read(tmp_path)


def test_files_that_cannot_be_opened_are_reported(tmp_path):
    with pytest.raises(FileError, match=r"cannot write .*a: No such file or directory\."):
        write(tmp_path / "missing" / "a")
    with pytest.raises(FileError, match=r"cannot read .*a\.gz: No such file or directory\."):
        read(tmp_path / "a.gz")


def test_standard_streams_have_a_dash_for_a_name(monkeypatch, capfdbinary):
    standard_input(monkeypatch, CONTENT)
    assert read("-") == CONTENT
    sys.stdin.buffer.seek(0)  # it was left open
    write("-", b"out")
    assert capfdbinary.readouterr().out == b"out"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_can_be_opened_again_and_again(tmp_path, suffix):
    write(tmp_path / f"a{suffix}")
    with open_again(tmp_path / f"a{suffix}") as opened:
        for _ in range(3):
            with opened() as stream:
                assert stream.read() == CONTENT


def test_standard_input_can_be_opened_again_and_again(monkeypatch):
    standard_input(monkeypatch, CONTENT)
    with open_again("-") as opened:
        for _ in range(3):
            with opened() as stream:
                assert stream.read() == CONTENT


def test_a_pipe_can_be_opened_again_and_again(tmp_path):
    os.mkfifo(tmp_path / "a.gz")
    writer = Thread(target=lambda: (tmp_path / "a.gz").write_bytes(gzip.compress(CONTENT)))
    writer.start()
    with open_again(tmp_path / "a.gz") as opened:
        for _ in range(3):
            with opened() as stream:
                assert stream.read() == CONTENT
    writer.join(timeout=600)


def test_a_missing_file_cannot_be_opened_again(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*a: No such file or directory\."), open_again(tmp_path / "a"):
        pass


# --- one writer, one way to write -------------------------------------------------------------------------------------


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    path = tmp_path / "a"
    for mode in (0o600, 0o640, 0o755):
        path.write_bytes(b"old")
        path.chmod(mode)
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_second_writer_is_refused_and_harms_nothing(tmp_path):
    path = tmp_path / "a.gz"
    with open_output(path) as stream:
        stream.write(b"first")
        with pytest.raises(FileError, match=r"another run is writing to .*a\.gz; wait for it, or choose another name"):
            write(path, b"second")
    assert read(path) == b"first"
    assert names_in(tmp_path) == ["a.gz"]
    write(path, b"third")
    assert read(path) == b"third"


def test_a_writer_in_another_process_is_refused(tmp_path):
    program = "import sys; from setaug.storage import open_output\nwith open_output(sys.argv[1]) as stream: pass"
    with open_output(tmp_path / "a") as stream:
        stream.write(b"first")
        command = [sys.executable, "-c", program, str(tmp_path / "a")]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another run is writing to" in found.stderr
    assert read(tmp_path / "a") == b"first"


def test_many_writers_at_once_leave_one_whole_file(tmp_path):
    path, done, refused = tmp_path / "a", [], []

    def run(number):
        for _ in range(30):
            try:
                write(path, b"%d" % number * 100_000)
                done.append(number)
            except FileError:
                refused.append(number)

    threads = [Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = read(path)
    assert done
    assert len(content) == 100_000
    assert len(set(content)) == 1
    assert names_in(tmp_path) == ["a"]


def test_without_locks_temporary_files_have_names_of_their_own(tmp_path, monkeypatch):
    """Two machines that share a folder, and a file system that knows no locks."""
    monkeypatch.setattr("setaug.storage.writing._lock", lambda *_: False)
    path = tmp_path / "a"
    with open_output(path) as one, open_output(path) as other:
        one.write(b"1" * 100)
        other.write(b"2" * 50)
    assert read(path) == b"1" * 100
    assert names_in(tmp_path) == ["a"]


def test_a_link_at_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr("setaug.storage.writing.secrets.token_hex", lambda n: "0" * 2 * n)
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / f".a.{'0' * 16}.part").symlink_to(tmp_path / "victim")
    monkeypatch.setattr("setaug.storage.writing._remove_parts", lambda target: None)
    with pytest.raises(FileError, match=r"cannot write .*a: File exists"):
        write(tmp_path / "a")
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_a_link_at_the_name_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / ".a.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(FileError, match=r"cannot write .*a: "):
        write(tmp_path / "a")
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_what_killed_runs_left_is_removed_and_nothing_else(tmp_path):
    left = [".a.0123456789abcdef.part", ".a.4711.part", ".a.lock"]
    others = [".a.part", ".a.mine.part", ".b.0123456789abcdef.part", "a.0123456789abcdef.part"]
    for name in [*left, *others]:
        (tmp_path / name).write_bytes(b"x")
    write(tmp_path / "a")
    assert names_in(tmp_path) == sorted([*others, "a"])


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("ä" * 127)
    write(path)
    assert read(path) == CONTENT
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("prefix", ["file://", "local://"])
def test_an_address_of_a_local_file_is_its_path(tmp_path, prefix, monkeypatch):
    path, elsewhere = tmp_path / "out" / "a.zst", tmp_path / "tmp"
    path.parent.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    write(path, b"old")
    with pytest.raises(KeyboardInterrupt):
        write_and_fail(f"{prefix}{path}", KeyboardInterrupt)
    assert read(f"{prefix}{path}") == b"old"
    write(f"{prefix}{path}", b"new")
    assert read(path) == b"new"
    assert names_in(elsewhere) == []
    with open_again(f"{prefix}{path}") as opened, opened() as stream:
        assert stream.read() == b"new"


@pytest.mark.parametrize(
    "spelling",
    [
        *("{0}/in", "in", "./in", "../{1}/in", "link", "hard", "file://{0}/in", "local://{0}/./in", "sub/../in"),
        "simplecache::file://{0}/in",
    ],
)
def test_an_output_never_replaces_an_input(spelling, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").write_bytes(b"precious")
    Path("link").symlink_to("in")
    Path("hard").hardlink_to("in")
    Path("sub").mkdir()
    name = spelling.format(tmp_path, tmp_path.name)
    for output, source in [(name, "in"), ("in", name)]:
        with pytest.raises(FileError, match="the output would replace the input"):
            check_outputs([None, "-", output], [None, "-", "other", source])


def test_an_output_is_not_redirected_to_an_input(tmp_path):
    (tmp_path / "in").write_bytes(b"precious")
    with (tmp_path / "in").open("ab") as stream:
        with pytest.raises(FileError, match="the output would replace the input"):
            check_outputs([f"/dev/fd/{stream.fileno()}"], [tmp_path / "in"])
        check_outputs([f"/dev/fd/{stream.fileno()}"], [tmp_path / "other", tmp_path])


def test_an_output_behind_an_address_never_replaces_an_input():
    for spelling in ("memory://folder/in.jsonl", "memory:///folder/in.jsonl"):
        with pytest.raises(FileError, match="the output would replace the input"):
            check_outputs([spelling], ["memory://folder/in.jsonl"])
    check_outputs(["memory://folder/out.jsonl"], ["memory://folder/in.jsonl"])


def test_outputs_are_different_files_and_data_is_not_written_among_the_input(tmp_path):
    with pytest.raises(FileError, match="would be written twice"):
        check_outputs([tmp_path / "a", f"{tmp_path}/./a"], [])
    with pytest.raises(FileError, match="the output would be inside the input folder"):
        check_outputs([tmp_path / "a.jsonl"], [tmp_path])
    check_outputs(["-", "-", "/dev/null", "/dev/null", tmp_path / "report.html"], [tmp_path])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_an_archive_without_bytes_is_damaged(suffix, tmp_path):
    (tmp_path / f"a.jsonl{suffix}").write_bytes(b"")
    with pytest.raises(FileError, match=rf"a.jsonl{suffix} is damaged: it is empty\."):
        read(tmp_path / f"a.jsonl{suffix}")


def test_a_small_archive_of_much_is_decompressed_piece_by_piece(tmp_path):
    size = 1 << 29
    path = tmp_path / "zeros.zst"
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(bytes(size)))
    tracemalloc.start()
    try:
        with open_input(path) as stream:
            buffer, n_read = bytearray(1 << 20), 0
            while n := stream.readinto(buffer):
                n_read += n
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_read == size
    assert peak < size / 2
