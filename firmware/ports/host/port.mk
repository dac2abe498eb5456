ARCH := host
FAMILY :=
