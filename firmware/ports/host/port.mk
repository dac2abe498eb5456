ARCH := host
CPU :=
FAMILY :=
