"""Files of TensorFlow Lite with several subgraphs, written as its converter writes Keras layers."""

import numpy as np

from twin.network.writers import tflite as writer

DTYPES = {"float32": 0, "int32": 2, "bool": 6, "int8": 9, "resource": 13}


class Subgraph:
    """Tensors and operators of one subgraph; numbers are those of the tensors."""

    def __init__(self):
        self.tensors, self.operators, self.inputs, self.outputs = [], [], [], []

    def tensor(self, shape, dtype="float32", data=None, signature=None):
        self.tensors.append((tuple(shape), dtype, data, signature))
        return len(self.tensors) - 1

    def constant(self, values, dtype=None):
        values = np.asarray(values)
        values = values.astype(dtype or ("int32" if values.dtype.kind == "i" else "float32"))
        return self.tensor(values.shape, str(values.dtype), values)

    def input(self, shape, dtype="float32"):
        self.inputs.append(self.tensor(shape, dtype))
        return self.inputs[-1]

    def operator(self, name, inputs, *shapes, dtype="float32", table=None, **options):
        """Add an operator and return its result, or results."""
        made = [self.tensor(shape, dtype) for shape in shapes]
        self.operators.append((name, inputs, made, table, options))
        return made[0] if len(made) == 1 else made


def write_subgraphs(path, subgraphs):
    """Write a file of these subgraphs, the first of which is the network; custom names are kept."""
    from flatbuffers import Builder
    from tflite.BuiltinOperator import BuiltinOperator
    from tflite.BuiltinOptions import BuiltinOptions

    builder = Builder(1024)
    buffers, codes, tables = [writer._table(builder, "Buffer")], [], []
    for graph in subgraphs:
        tensors = [_write_tensor(builder, buffers, *told) for told in graph.tensors]
        operators = []
        for name, inputs, outputs, table, options in graph.operators:
            if name not in codes:
                codes.append(name)
            custom = options.pop("custom", None)
            stored = None if custom is None else builder.CreateByteVector(bytes(custom))
            told = writer._table(builder, table, **options) if table else None
            operators.append(writer._table(
                builder, "Operator", opcode_index=codes.index(name),
                inputs=writer._integers(builder, inputs),
                outputs=writer._integers(builder, outputs), builtin_options=told,
                builtin_options_type=getattr(BuiltinOptions, table) if table else None,
                custom_options=stored))
        tables.append(writer._table(
            builder, "SubGraph", tensors=writer._offsets(builder, tensors),
            inputs=writer._integers(builder, graph.inputs),
            outputs=writer._integers(builder, graph.outputs),
            operators=writer._offsets(builder, operators)))
    written = []
    for name in codes:
        known = hasattr(BuiltinOperator, name)
        code = getattr(BuiltinOperator, name if known else "CUSTOM")
        custom = None if known else builder.CreateString(name)
        written.append(writer._table(builder, "OperatorCode", builtin_code=code, version=1,
                                     deprecated_builtin_code=min(code, 127), custom_code=custom))
    model = writer._table(builder, "Model", version=3,
                          operator_codes=writer._offsets(builder, written),
                          subgraphs=writer._offsets(builder, tables),
                          buffers=writer._offsets(builder, buffers))
    builder.Finish(model, file_identifier=b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def _write_tensor(builder, buffers, shape, dtype, data, signature):
    number = 0
    if data is not None:
        buffers.append(writer._table(builder, "Buffer", data=builder.CreateByteVector(
            np.ascontiguousarray(data).tobytes())))
        number = len(buffers) - 1
    told = None if signature is None else writer._integers(builder, signature)
    return writer._table(builder, "Tensor", shape=writer._integers(builder, shape), buffer=number,
                         type=DTYPES[dtype], shape_signature=told)


def keras_lstm(steps=28, features=12, units=20, sequences=False, bound=True):
    """A Keras LSTM and a dense layer: main graph, condition and body of the loop."""
    main, condition, body = Subgraph(), Subgraph(), Subgraph()
    listed = (steps, 1, units) if sequences else (1, 1, units)
    states = ((), "int32"), ((), "int32"), (listed, "float32"), ((1, units), "float32"), (
        (1, units), "float32"), ((steps, 1, features), "float32")
    image = main.input((1, steps, features))
    turned = main.operator("RESHAPE", [image, main.constant([steps, 1, features])],
                           (steps, 1, features))
    zero, empty = main.constant(np.int32(0)), main.constant(np.zeros((1, units)))
    given = [zero, zero, main.constant(np.zeros(listed)), empty, empty, turned]
    results = [main.tensor(*state) for state in states]
    main.operators.append(("WHILE", given, results, "WhileOptions",
                           {"cond_subgraph_index": 1, "body_subgraph_index": 2}))
    last = main.operator("RESHAPE", [results[3], main.constant([1, units])], (1, units))
    main.outputs = [main.operator("FULLY_CONNECTED", [last, main.constant(np.ones((4, units))), -1],
                                  (1, 4), table="FullyConnectedOptions")]
    ends = [condition.input(*state) for state in states]
    limit = condition.constant(np.int32(steps)) if bound else ends[1]
    tests = [condition.operator("LESS", [ends[place], limit], (), dtype="bool")
             for place in (1, 0)]
    condition.outputs = [condition.operator("LOGICAL_AND", tests, (), dtype="bool")]
    _fill_body(body, [body.input(*state) for state in states], steps, features, units, sequences)
    return [main, condition, body]


def _fill_body(body, own, steps, features, units, sequences):
    one = body.constant(np.int32(1))
    time = body.operator("ADD", [own[1], one], (), dtype="int32", table="AddOptions")
    counter = body.operator("ADD", [own[0], one], (), dtype="int32", table="AddOptions")
    recurrent = body.operator(
        "FULLY_CONNECTED", [own[3], body.constant(np.ones((4 * units, units))), -1],
        (1, 4 * units), table="FullyConnectedOptions")
    item = body.operator("GATHER", [own[5], own[1]], (1, features), table="GatherOptions")
    entered = body.operator(
        "FULLY_CONNECTED", [item, body.constant(np.ones((4 * units, features))), -1],
        (1, 4 * units), table="FullyConnectedOptions")
    gates = body.operator("ADD", [entered, recurrent], (1, 4 * units), table="AddOptions")
    parts = body.operator("SPLIT", [one, gates], *[(1, units)] * 4, table="SplitOptions",
                          num_splits=4)
    opened = [body.operator("LOGISTIC", [parts[place]], (1, units)) for place in (0, 1, 3)]
    new = body.operator("TANH", [parts[2]], (1, units))
    kept = body.operator("MUL", [opened[1], own[4]], (1, units), table="MulOptions")
    added = body.operator("MUL", [opened[0], new], (1, units), table="MulOptions")
    cell = body.operator("ADD", [kept, added], (1, units), table="AddOptions")
    hidden = body.operator("MUL", [opened[2], body.operator("TANH", [cell], (1, units))],
                           (1, units), table="MulOptions")
    stored = body.operator("RESHAPE", [hidden, body.constant([1, 1, units])], (1, 1, units))
    if sequences:
        before = body.operator("SLICE", [own[2], body.constant([0, 0, 0]),
                                         body.constant([-1, -1, -1])], (1, 1, 1),
                               table="SliceOptions")
        after = body.operator("SLICE", [own[2], body.constant([0, 0, 0]),
                                        body.constant([-1, -1, -1])], (1, 1, units),
                              table="SliceOptions")
        made = body.tensor((steps, 1, units), signature=(-1, -1, -1))
        body.operators.append(("CONCATENATION", [before, stored, after], [made],
                               "ConcatenationOptions", {}))
        stored = made
    body.outputs = [counter, time, stored, hidden, cell, own[5]]
