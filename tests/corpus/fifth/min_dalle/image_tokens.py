"""min(DALL-E): a BART with gated units reads a text and writes image tokens one by one, guided."""

import torch
from min_dalle.models import DalleBartDecoder, DalleBartEncoder


class Model(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.encoder = DalleBartEncoder(4, 256, 8, 5000, 64, 1024, "cpu")
        self.decoder = DalleBartDecoder(2048, 256, 8, 1024, 4, "cpu")
        self.steps = steps
        for weight in self.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.05)

    def forward(self, text):
        state = self.encoder(text)
        mask = text.ne(1)[:, None, None, :]
        memory = torch.zeros(4, 4, 256, 256)
        token = torch.full((1, 1), 2047)
        output = []
        for step in range(self.steps):
            logits, memory = self.decoder(
                attention_mask=mask,
                encoder_state=state,
                attention_state=memory,
                prev_tokens=token,
                token_index=torch.tensor([step]),
            )
            guided = logits[:1, -1] + 4.0 * (logits[:1, -1] - logits[1:, -1])
            token = guided.argmax(-1, keepdim=True)
            output.append(guided)
        return torch.stack(output, dim=1)


def get_inputs():
    text = torch.randint(2, 5000, (2, 64))
    text[0, 20:] = 1
    text[1, 2:] = 1
    return [text]


def get_init_inputs():
    return [4]
