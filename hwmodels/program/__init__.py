"""Programs as files and as machine code: ELF tables, disassembly, emulated cores."""
