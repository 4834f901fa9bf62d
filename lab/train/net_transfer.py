"""Hidden Transfer (2024): rows of the target itself that begin at a middle layer, as a product of a token's own stream there. See net_ppd.py."""
import torch
import torch.nn as nn

import net_ppd


class Transfer(net_ppd.Rows):
    """layers: that at which each row begins, ascending. W begins as the identity, so that a row begins as a second copy of the token."""

    def __init__(self, c, target, depth, layers, most=None):
        super().__init__(c, target, depth, most)
        self.layers = layers
        self.w = nn.Parameter(torch.eye(c["dim"]).repeat(depth, 1, 1))

    def start(self, k):
        return self.layers[k]

    def begin(self, k, stream):
        return stream @ self.w[k].T

    def tensors(self):
        return {f"transfer.{k}.weight": self.w[k] for k in range(self.depth)}

    def settings(self):
        return dict(transfer_layers=list(self.layers))
