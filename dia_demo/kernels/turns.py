"""What a step's codes say of the turn that is spoken: see engine/turns.

A row asks once a step. As operations on arrays of nine numbers it took longer to call than to
compute.
"""

from __future__ import annotations

from dia_demo.kernels.jit import compiled


@compiled()
def count_same(tokens, frame, delay, codes):
    """How many of the codes [frames, C] the frames before `frame` have.

    tokens [positions, C]: code c of frame f is at position f + 1 + delay[c]. All are int64.
    """
    frames, channels = codes.shape
    count = 0
    for number in range(frames):
        position = frame - frames + number + 1
        for channel in range(channels):
            count += tokens[position + delay[channel], channel] == codes[number, channel]
    return count


@compiled()
def add_evidence(evidence, memory, ratios, codes, right):
    """Add what the codes [C] say to the evidence for each voice, float32 [voices], of which
    `memory` counts on; returns how far the most likely voice is above the voice `right`.

    ratios: float32 [C, V, voices]. Codes that are not below V say nothing of any voice.
    """
    channels, limit, voices = ratios.shape
    for channel in range(channels):
        if codes[channel] >= limit:
            return evidence.dtype.type(0)
    highest = evidence[0]
    for voice in range(voices):
        heard = ratios[0, codes[0], voice]
        for channel in range(1, channels):
            heard += ratios[channel, codes[channel], voice]
        evidence[voice] = memory * evidence[voice] + heard
        highest = evidence[voice] if voice == 0 else max(highest, evidence[voice])
    return highest - evidence[right]
