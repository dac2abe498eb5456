"""What an emulator loads of an image, and whose image it is: of made tables, by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from calibration.errors import LinkError
from calibration.virtual_board import image_file
from calibration.virtual_board.image_file import check_image, read_image

WRITABLE, ALLOCATED, CODE = 1, 2, 4


def section(address, size_bytes, flags=ALLOCATED):
    return SimpleNamespace(address=address, size_bytes=size_bytes, flags=flags, file_bytes=0)


def loaded(address, content):
    return SimpleNamespace(loaded=address, file_bytes=len(content), content=content)


@pytest.fixture
def of_tables(monkeypatch, tmp_path):
    """A file whose tables are these: sections, segments, symbols by name."""
    def make(allocated=(), loads=(), symbols=(), bits=32):
        words = {name: SimpleNamespace(value=value) for name, value in symbols}
        monkeypatch.setattr(image_file, "read_elf_file", lambda path, error: SimpleNamespace(
            allocated=list(allocated), loads=list(loads), bits=bits, symbol=words.get,
            data=lambda part: part.content))
        (tmp_path / "image.elf").write_bytes(b"")
        return tmp_path / "image.elf"

    return make


def test_code_is_what_is_executed_and_memories_are_whole_pages(of_tables):
    """Data at 0x20000010 and what is copied there, read-only data between two pieces of code."""
    path = of_tables(
        [section(0x08000000, 0x40), section(0x08000040, 0x100, ALLOCATED | CODE),
         section(0x08000200, 0x50, ALLOCATED | CODE), section(0x20000010, 0x20,
                                                              ALLOCATED | WRITABLE)],
        [loaded(0x08000000, b"code"), loaded(0x08020000, b"data"), loaded(0x20000010, b"")],
        [("vectors", 0x08000000)])
    found = read_image(path)
    assert found.code == (0x08000040, 0x08000250) and found.vectors == 0x08000000
    assert found.pieces == ((0x08000000, b"code"), (0x08020000, b"data"))
    assert found.memories == ((0x08000000, 0x10000), (0x08020000, 0x10000), (0x20000000, 0x10000))


@pytest.mark.parametrize("lacking", ["vectors", "code", "pieces"])
def test_an_image_without_code_vectors_or_content_is_refused(of_tables, lacking):
    path = of_tables([section(0, 16, ALLOCATED | (CODE if lacking != "code" else 0))],
                     [] if lacking == "pieces" else [loaded(0, b"code")],
                     [] if lacking == "vectors" else [("vectors", 0)])
    with pytest.raises(LinkError, match=r"image\.elf: no code, or no symbol `vectors`, in the ima"):
        read_image(path)


def of_port(name: bytes, address=0x08000100):
    """Sections with `struct port`, whose first word is where its name stands."""
    table = section(0x08000000, 64)
    table.content = bytes(8) + address.to_bytes(4, "little") + bytes(52)
    words = section(0x08000100, 64)
    words.content = name + bytes(64 - len(name))
    return [table, words], [("port", 0x08000008)]


@pytest.mark.parametrize(("name", "port"), [
    (b"mps2-an386", "mps2-an386"), (b"unicorn", "unicorn"), (b"unicorn", "unicorn-m7")])
def test_an_image_runs_on_its_port_and_on_each_core_of_it(of_tables, name, port):
    allocated, symbols = of_port(name)
    check_image(of_tables(allocated, symbols=symbols), port)


@pytest.mark.parametrize(("name", "port"), [
    (b"mps2-an386", "mps2-an500"), (b"unicorn-m4", "unicorn"), (b"unicorn", "unicorns"),
    (b"uni", "unicorn-m4")])
def test_an_image_of_another_port_is_refused_by_both_names(of_tables, name, port):
    allocated, symbols = of_port(name)
    with pytest.raises(LinkError, match=f"the image is for port {name.decode()}, not {port}, which "
                                        f"has .*--port {port}"):
        check_image(of_tables(allocated, symbols=symbols), port)


def test_this_machines_images_are_of_the_host(of_tables):
    path = of_tables(symbols=[("port", 0)], bits=64)
    check_image(path, "host")
    with pytest.raises(LinkError, match="the image is for port host, not unicorn-m4"):
        check_image(path, "unicorn-m4")


@pytest.mark.parametrize("broken", ["no symbol", "no name", "elsewhere"])
def test_what_is_no_image_of_the_firmware_is_refused(of_tables, broken):
    allocated, symbols = of_port(b"" if broken == "no name" else b"host",
                                 0x30000000 if broken == "elsewhere" else 0x08000100)
    path = of_tables(allocated, symbols=[] if broken == "no symbol" else symbols)
    with pytest.raises(LinkError, match="not an image of the firmware; accepted: what `twin fir"):
        check_image(path, "host")
    path.unlink()
    with pytest.raises(LinkError, match=r"image\.elf: no such image$"):
        check_image(path, "host")
