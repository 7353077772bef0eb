"""Keras on its torch backend: an encoder with convolutions, a two-way GRU and attention."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch


class Model(torch.nn.Module):
    def __init__(self, length):
        super().__init__()
        tokens = keras.Input((length,), dtype="int32")
        x = keras.layers.Embedding(5000, 128)(tokens)
        for dilation in (1, 2, 4):
            y = keras.layers.SeparableConv1D(128, 5, padding="same", dilation_rate=dilation)(x)
            x = keras.layers.LayerNormalization()(x + keras.layers.Activation("swish")(y))
        x = keras.layers.Bidirectional(keras.layers.GRU(64, return_sequences=True))(x)
        y = keras.layers.MultiHeadAttention(4, 32)(x, x, use_causal_mask=True)
        x = keras.layers.LayerNormalization()(x + y)
        pooled = keras.layers.Concatenate()(
            [keras.layers.GlobalAveragePooling1D()(x), keras.layers.GlobalMaxPooling1D()(x)]
        )
        self.net = keras.Model(tokens, keras.layers.Dense(20, activation="softmax")(pooled))

    def forward(self, tokens):
        return self.net(tokens, training=False)


def get_inputs():
    return [torch.randint(0, 5000, (2, 48))]


def get_init_inputs():
    return [48]
