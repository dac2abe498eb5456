"""A picture of one's own: MACs per byte of each layer, in the project's style."""

from twin.reports.figures.canvas import describe_deployment, new_figure
from twin.reports.palette import SKY, fill


def draw_intensity(prediction):
    """Return a matplotlib figure of a prediction."""
    layers = [layer for layer in prediction.layers if layer.bytes_moved]
    with new_figure(9.0, 0.8 + 0.3 * len(layers), "Arithmetic intensity",
                    describe_deployment(prediction)) as figure:
        axes = figure.subplots()
        axes.barh([f"{layer.index} {layer.op}" for layer in layers],
                  [layer.macs / layer.bytes_moved for layer in layers], **fill(SKY))
        axes.invert_yaxis()
        axes.set_xlabel("MACs per byte moved once")
    return figure
