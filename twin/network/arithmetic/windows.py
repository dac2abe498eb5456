"""Sliding windows of an image as an array."""

from __future__ import annotations

import numpy as np

from twin.network.graph import Shape, Window


def cut_windows(image: np.ndarray, window: Window, out_shape: Shape,
                border: int | float) -> np.ndarray:
    """Cut every window of an image.

    Parameters
    ----------
    image : ndarray, shape (height, width, channels)
        One image.
    window
        Kernel, stride, dilation and padding.
    out_shape : tuple of (int, int)
        Windows down and across.

    Returns
    -------
    ndarray, shape (out_h, out_w, kernel_h, kernel_w, channels)
        A copy.
    """
    (kernel_h, kernel_w), (stride_h, stride_w) = window.kernel, window.stride
    dilation_h, dilation_w = window.dilation
    top, _, left, _ = window.padding
    out_h, out_w = out_shape
    rows = (out_h - 1) * stride_h + (kernel_h - 1) * dilation_h + 1
    columns = (out_w - 1) * stride_w + (kernel_w - 1) * dilation_w + 1
    padded = np.full((rows, columns, image.shape[2]), border, image.dtype)
    kept = image[:rows - top, :columns - left]
    padded[top:top + kept.shape[0], left:left + kept.shape[1]] = kept
    y = (np.arange(out_h) * stride_h)[:, None] + np.arange(kernel_h) * dilation_h
    x = (np.arange(out_w) * stride_w)[:, None] + np.arange(kernel_w) * dilation_w
    return padded[y[:, None, :, None], x[None, :, None, :]]
