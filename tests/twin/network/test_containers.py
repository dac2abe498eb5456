"""Models inside archives, C arrays and programs: found whole, several named, bombs refused."""

import gzip
import hashlib
import io
import os
import struct
import subprocess
import tarfile
import zipfile

import pytest

from twin.api.commands.models import export_model
from twin.errors import ModelError
from twin.network import zoo
from twin.network.model_file import name_model
from twin.network.readers import container, read_model
from twin.network.readers.container import find_models
from twin.network.writers.tflite import encode_tflite

KWS, IC = (encode_tflite(zoo.build(name)) for name in ("kws", "ic"))


def write_c(content, form="{:#04x}", name="g_model", head="alignas(16) const unsigned char"):
    numbers = [form.format(byte) for byte in content]
    lines = [", ".join(numbers[at:at + 12]) for at in range(0, len(numbers), 12)]
    return f"// {{ a comment }}\n{head} {name}[] = {{\n" + ",\n  ".join(lines) + "\n};\n"


def write_zip(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return path


def write_elf(data, *, symbols=()):
    """An ELF32 program of one loaded segment at 0x08000000, with a symbol table."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in symbols)
    table = bytes(16) + b"".join(
        struct.pack("<IIIBBH", names.index(name.encode()), 0x08000000 + at, size, 1, 0, 1)
        for name, at, size in symbols)
    data_at = 52 + 32
    parts = data_at + len(data), data_at + len(data) + len(table)
    sections = parts[1] + len(names)
    head = b"\x7fELF\1\1\1" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, 0, 52, sections, 0, 52, 32, 1, 40, 4, 0)
    segment = struct.pack("<IIIIIIII", 1, data_at, 0x08000000, 0x08000000, len(data), len(data),
                          4, 4)
    rows = [(0,) * 10, (0, 1, 2, 0x08000000, data_at, len(data), 0, 0, 4, 0),
            (0, 2, 0, 0, parts[0], len(table), 3, 0, 4, 16),
            (0, 3, 0, 0, parts[1], len(names), 0, 0, 1, 0)]
    return head + segment + data + table + names + b"".join(
        struct.pack("<IIIIIIIIII", *row) for row in rows)


def check_kws(path, place):
    graph = read_model(path)
    assert graph.sha256 == hashlib.sha256(KWS).hexdigest()
    assert graph.notes[0].startswith(f"model: {place} in ")
    return graph


@pytest.mark.parametrize("form", ["{:#04x}", "{}", "{:#05o}", "0X{:02X}"])
def test_c_arrays_in_every_base(tmp_path, form):
    form = form.replace("{:#05o}", "0{:03o}")
    (tmp_path / "model.cc").write_text("const int x[] = {84, 70, 76, 51};\n" + write_c(KWS, form))
    assert check_kws(tmp_path / "model.cc", "g_model").name == "model"


def test_archives_of_mltk_and_edge_impulse_tar_and_gzip(tmp_path):
    mltk = write_zip(tmp_path / "kws_v3.mltk.zip", kws_v3_dot_tflite=KWS, other_dot_tflite=IC,
                     kws_v3_dot_h5=b"\x89HDF")
    assert check_kws(mltk, "kws_v3.tflite").name == "kws_v3"
    impulse = write_zip(tmp_path / "ei-cpp.zip", **{
        "tflite-model__tflite_learn_5_dot_cpp": write_c(KWS, name="tflite_learn_5"),
        "edge-impulse-sdk__x_dot_h": "int a[] = {1};"})
    check_kws(impulse, "tflite-model/tflite_learn_5.cpp:tflite_learn_5")
    sdk = "edge-impulse-sdk__tensorflow__lite__micro__testing__"
    tests = {f"{sdk}test_conv_model_dot_cpp": write_c(IC, name="kTestConvModelData")}
    check_kws(write_zip(tmp_path / "ei-sdk.zip", model_dot_h=write_c(KWS), **tests),
              "model.h:g_model")
    compiled = write_zip(tmp_path / "ei-eon.zip", **tests, **{
        "tflite-model__trained_model_compiled_dot_cpp": "int trained_model_invoke() {}"})
    with pytest.raises(ModelError, match="compiled by Edge Impulse's EON"):
        read_model(compiled)
    both = write_zip(tmp_path / "both.zip", trained_dot_tflite=KWS, model_dot_h=write_c(KWS))
    check_kws(both, "trained.tflite")
    (tmp_path / "kws.bin.gz").write_bytes(gzip.compress(KWS))
    check_kws(tmp_path / "kws.bin.gz", "kws.bin")
    with tarfile.open(tmp_path / "x.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("deep/kws.tflite")
        member.size = len(KWS)
        archive.addfile(member, io.BytesIO(KWS))
    check_kws(tmp_path / "x.tgz", "deep/kws.tflite")


def test_programs_name_models_by_symbol_or_address(tmp_path):
    data = b'"TFL3" alone' + bytes(4) + KWS + bytes(64) + IC + bytes(100)
    at = 16 + len(KWS) + 64
    path = tmp_path / "app.elf"
    path.write_bytes(write_elf(data, symbols=[("g_kws", 16, len(KWS))]))
    with pytest.raises(ModelError, match=rf"holds 2 models: g_kws \({len(KWS):,} bytes\), address "
                                         rf"{0x08000000 + at:#x} .*chosen by .*app.elf:g_kws"):
        read_model(path)
    assert check_kws(f"{path}:g_kws", "g_kws").name == "g_kws"
    stripped = tmp_path / "app.eim"
    stripped.write_bytes(write_elf(bytes(16) + KWS + bytes(500)))
    check_kws(stripped, "address 0x8000010")
    (tmp_path / "flash.bin").write_bytes(bytes(4096) + KWS + b"\xff" * 999)
    check_kws(tmp_path / "flash.bin", "offset 0x1000")
    with pytest.raises(ModelError, match="no model 'g_none' in it; accepted: g_kws"):
        read_model(f"{path}:g_none")


def test_a_real_linker_keeps_it_readable(tmp_path):
    compiler = next((one for one in ("cc", "gcc", "clang") if subprocess.run(
        ["which", one], capture_output=True, check=False).returncode == 0), None)
    if compiler is None or os.uname().sysname != "Linux":
        return
    (tmp_path / "m.c").write_text(write_c(KWS, head="const unsigned char")
                                  + "int main(void) { return g_model[7]; }\n")
    subprocess.run([compiler, str(tmp_path / "m.c"), "-o", str(tmp_path / "m.out")], check=True)
    check_kws(tmp_path / "m.out", "g_model")


@pytest.mark.parametrize("name, content, message", [
    ("x.zip", b"PK\3\4 and no more", "a damaged archive"),
    ("x.gz", b"\x1f\x8b and no more", "a damaged archive"),
    ("x.elf", b"\x7fELF\1\1", "a damaged ELF file"),
    ("x.elf", b"\x7fELF\1\2", "a damaged ELF file: .*big endian"),
    ("x.c", b"int a[] = {0, 0, 0, 0, 'T', 'F', 'L', '3'};", "its code: --elf FILE --from SYMBOL"),
    ("x.c", b"/*" * 100_000, "holds no model"), ("x.h", b"a[" * 100_000, "holds no model"),
    ("x.cpp", b"x[] = {" * 100_000, "holds no model"),
    ("x.bin", b"\xff" * 8 + b"TFL3" * 1000, "holds no model"), ("x.bin", b"", "file is empty"),
    ("trained_model_compiled.cpp", b"TfLiteStatus trained_model_invoke() {}", "Impulse's EON"),
    ("x.eim", b"\0tflite_learn_5_invoke\0", "Impulse's EON.*TensorFlow Lite in place of EON")])
def test_what_holds_none_is_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=message) as refused:
        read_model(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_bombs_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "LARGEST_BYTES", 1 << 20)
    monkeypatch.setattr(container, "MOST_ENTRIES", 50)
    for name, content in (("a.zip", write_zip(tmp_path / "a.zip", m_dot_tflite=bytes(1 << 21))),
                          ("b.zip", write_zip(tmp_path / "b.zip", **{
                              f"m{n}": b"" for n in range(51)}))):
        with pytest.raises(ModelError, match=f"{name}: too large an archive"):
            read_model(content)
    (tmp_path / "c.gz").write_bytes(gzip.compress(bytes(1 << 21)))
    with pytest.raises(ModelError, match="unpacks to more than 1,048,576 bytes"):
        read_model(tmp_path / "c.gz")


@pytest.mark.parametrize("ending", ["tflite", "onnx", "json", "zip", "c", "elf", "bin"])
def test_a_sparse_file_is_refused_unread(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    with path.open("wb") as stream:
        stream.truncate(1_900_000_000)
    with pytest.raises(ModelError, match=r"has 1,900,000,000 bytes; at most [0-9,]* are read"):
        read_model(path)


def test_every_cut_and_flip_of_a_program_is_a_model_or_one_line():
    program = write_elf(bytes(16) + KWS, symbols=[("g_kws", 16, len(KWS))])
    for at in (*range(0, 120, 3), *range(120, len(program), 997)):
        for damaged in (program[:at], program[:at] + b"\xff\xff" + program[at + 2:]):
            try:
                assert find_models("x.elf", damaged)
            except ModelError as error:
                assert "\n" not in str(error)


def test_a_model_is_taken_out_as_it_is(tmp_path):
    path = write_zip(tmp_path / "a.zip", kws_dot_tflite=KWS)
    assert export_model(str(path), tmp_path / "out.tflite").read_bytes() == KWS


def test_a_container_that_is_not_there_is_no_such_file(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        read_model(tmp_path / "none.zip")


@pytest.mark.parametrize(("model", "name"), [
    ("kws", "kws"), ("zoo:kws", "zoo:kws"), ("a/k.mltk.zip", "k"), ("a/k.TFLITE", "k"),
    ("fw.elf:g_kws", "g_kws"), ("zoo.zip:nets/k.onnx", "k")])
def test_a_model_has_one_name_in_every_table(model, name):
    assert name_model(model) == name


def test_a_member_is_chosen_as_the_refusal_says(tmp_path):
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in ("ad", "kws"):
            archive.writestr(f"sub/{name}.tflite", encode_tflite(zoo.build(name)))
    with pytest.raises(ModelError, match=r"chosen by (\S+)") as refused:
        read_model(tmp_path / "z.zip")
    chosen = str(refused.value).rpartition("chosen by ")[2]
    assert read_model(chosen).name == "ad"
    assert read_model(f"{tmp_path / 'z.zip'}:kws.tflite").name == "kws"


def test_an_image_of_two_models_is_refused_wherever_the_first_begins(tmp_path):
    first, second = (encode_tflite(zoo.build(name)) for name in ("ad", "kws"))
    for gap in (0, 4096):
        (tmp_path / "two.bin").write_bytes(bytes(gap) + first + bytes(64) + second)
        with pytest.raises(ModelError, match="holds 2 models"):
            read_model(tmp_path / "two.bin")


def test_an_array_cut_short_is_said(tmp_path):
    (tmp_path / "m.cc").write_text("const unsigned char g[] = {0x1c, 0, 0, 0, 0x54, 0x46, 0x4c, "
                                   "0x33, 0x00")
    with pytest.raises(ModelError, match="cut short"):
        read_model(tmp_path / "m.cc")
