"""`twin transform`: a network changed, and what could be changed of a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from twin.deployment import transformations
from twin.deployment.deployment import Deployment
from twin.deployment.transformations import Transformation
from twin.errors import UsageError
from twin.network.graph import Graph
from twin.network.readers import read_model
from twin.network.rewrites.rewrite import rewrite_network


def transform(model: str | PathLike[str] | Graph, changes: Mapping[str, object]) -> Graph:
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
