"""`twin models` and `transform`: networks of the zoo, and networks changed."""

from __future__ import annotations

from os import fspath
from pathlib import Path

from hwmodels.files import File, write_whole
from hwmodels.quantities import Settings
from twin.deployment import transformations
from twin.deployment.deployment import Deployment
from twin.deployment.transformations import Transformation
from twin.errors import UsageError
from twin.network import zoo
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import rewrite_network


def list_models() -> dict[str, Graph]:
    """Build every network of the zoo, by name."""
    return {name: zoo.build(name) for name in zoo.NAMES}


def export_model(name: str | Graph, file: File) -> Path:
    """Write a network of the zoo, or the model inside another file, as a .tflite or .onnx file.

    Parameters
    ----------
    name : str or Graph
        Of `list_models`, a network `transform` made, or a file that holds a model (FILE:NAME).
    file : str or path
        Where to: .tflite or .onnx.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        For another ending.
    """
    from twin.network.readers.container import open_container
    from twin.network.writers import SUFFIXES, write_model

    target = Path(file)
    if target.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{file}: a model file ends in .tflite or .onnx")
    found = None if isinstance(name, Graph) or zoo.is_known(name) else open_container(name)
    if found is not None:
        if target.suffix.lower() != found.suffix:
            raise UsageError(f"{file}: accepted: a name ending {found.suffix}, as the model in "
                             f"{found.file}")
        write_whole(target, found.content)
        return target
    write_model(name if isinstance(name, Graph) else zoo.build(name), target)
    return target


def transform(model: File | Graph, changes: Settings) -> Graph:
    """Change a network: its width, resolution, numbers, layers.

    Parameters
    ----------
    model : str, path or Graph
        A .tflite or .onnx file, a network of the zoo, or a graph.
    changes : mapping of str to object
        Path to value: {"network.width": 0.5, "network.weights": "int4"}.

    Returns
    -------
    Graph
        To be deployed, or written with `export_model`.

    Raises
    ------
    NotApplicableError
        When a change does not apply to the network, with the reason.
    UsageError
        For a path that is not of the network, or a value that cannot be.
    """
    for path in changes:
        if not path.startswith("network."):
            raise UsageError(f"{path}: is not of the network; accepted here: paths that begin with "
                             "network.; Deployment.replace takes the others")
    graph = model if isinstance(model, Graph) else read_model(fspath(model))
    return rewrite_network(graph, changes)


def list_transformations(deployment: Deployment) -> tuple[Transformation, ...]:
    """List what could be changed of a deployment, and why the rest does not apply.

    Parameters
    ----------
    deployment : Deployment
        From `twin.deploy`.

    Returns
    -------
    tuple of Transformation
        Each with the values worth trying, its effort and its cost.
    """
    return transformations.list_transformations(deployment)
