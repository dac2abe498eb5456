"""A compiler's c_info.json, made by hand after a public one."""


def node(name, number, unit, kind, inputs=(), outputs=()):
    return {"name": name, "id": number, "inputs": list(inputs), "outputs": list(outputs),
            "subgraph_nodes": [], "mapping": "NODE_HW", "type": kind,
            "attributes": {"HWUnit": unit} if unit else {}}


def buffer(number, pool, size, *, param=False):
    return {"name": f"buffer_{number}", "id": number, "mpool_id": pool, "size_bytes": size,
            "is_param": param}


def pool(number, name, width, ratio, address, cacheable="CACHEABLE_OFF"):
    return {"id": number, "name": name, "address": str(address), "size_bytes": 458752,
            "cacheable": cacheable, "attributes": {"byte_width": width, "freq_ratio": ratio}}


def made_info():
    """In the form of a c_info.json: figures are those of epochs 2 and 6 of mobilenet_v2_0.5_128
    under ST Edge AI 3.0.0, whose c_info.json is public."""
    first = {**node("epoch_2", 203, "", "", (3, 60, 109), (4,)), "subgraph_nodes": [
        node("Conv2D_4", 204, "CONV_ACC_V2 0", "Conv", (3, 60)),
        node("Conv2D_4_off_bias_9", 205, "ARITH_ACC_V2 0", "Add", (109,)),
        node("Conv2D_8_suboff_12", 206, "ARITH_ACC_V2 1", "Sub", (), (4,))]}
    scattered = {**node("epoch_6", 218, "", "", (7, 61), (8,)), "subgraph_nodes": [
        node("Conv2D_18", 219, "CONV_ACC_V2 0", "Conv", (7, 61), (8,))]}
    software = {**node("epoch_56", 447, "", "", (8,), (9,)), "mapping": "NODE_SW",
                "subgraph_nodes": [node("Softmax_212", 448, "", "Softmax")]}
    ignored = {**node("epoch_0", 1, "", ""), "mapping": "NODE_NO_X", "subgraph_nodes": []}

    def estimate(number, ops, compute, maximum):
        return {"node_id": number, "ops": ops, "compute_cycles": compute, "max_cycles": maximum}

    def access(number, pool_id, reads, read_cycles, writes, write_cycles):
        return {"node_id": number, "mpool_id": pool_id, "reads": reads,
                "read_cycles": read_cycles, "writes": writes, "write_cycles": write_cycles}

    return {
        "json_schema_version": "2.0",
        "environment": {"tools": [{"name": "ST.EdgeAI.Core", "version": "3.0.0"}]},
        "buffers": [buffer(3, 2, 49152), buffer(4, 2, 32768), buffer(7, 2, 196608),
                    buffer(8, 2, 49152), buffer(9, 2, 10), buffer(60, 9, 216, param=True),
                    buffer(61, 9, 864, param=True), buffer(109, 9, 32, param=True)],
        "graphs": [{"name": "network", "nodes": [ignored, first, scattered, software]}],
        "memory_pools": [pool(2, "npuRAM5", 8, 1.25, 875429888),
                         pool(9, "octoFlash", 1, 6, 1895825408, "CACHEABLE_ON")],
        "memory_accesses": [
            access(203, 9, 216, 1296, 0, 0), access(203, 2, 49152, 7680, 32768, 40960),
            access(218, 9, 864, 5184, 0, 0), access(218, 2, 196608, 245760, 49152, 30720 // 4),
            access(447, 2, 10, 2, 10, 2), access(1, 2, 0, 0, 0, 0)],
        "power_estimates": [estimate(1, 0, 0, 0), estimate(203, 1835008, 49152, 49152),
                            estimate(218, 1867776, 98304, 245760), estimate(447, 0, 522, 522)],
    }
