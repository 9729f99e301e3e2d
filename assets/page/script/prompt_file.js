// Voice prompts in formats that the server cannot read, such as an iPhone's voice memos (.m4a) and
// .webm: the browser decodes them and uploads a WAV. A file that it cannot decode is rejected.
const READABLE = /\.(wav|flac|ogg|oga|opus|mp3|aiff?|au|caf)$/i;
const RATE = 44100;
const MESSAGE = "cannot be read as audio: use WAV, FLAC, OGG or MP3.";

export class PromptFile {
  // Opening the accordion creates this component again; the document keeps its listeners.
  static #shown = null;
  #note;

  constructor({ element }) {
    const first = PromptFile.#shown === null;
    PromptFile.#shown = this;
    this.#note = element.querySelector("p");
    if (!first) return;
    // Runs before gradio's own listeners, which would upload the file unchanged.
    for (const name of ["change", "drop"]) {
      document.addEventListener(name, (event) => PromptFile.#shown.#take(event), { capture: true });
    }
  }

  async #take(event) {
    if (!event.target.closest("#voice-prompt")) return;
    const input = document.querySelector("#voice-prompt input[type=file]");
    const [file] = (event.dataTransfer ?? event.target).files ?? [];
    if (!input || !file) return;
    this.#note.textContent = "";
    if (READABLE.test(file.name)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    try {
      const chosen = new DataTransfer();
      chosen.items.add(await asWav(file));
      input.files = chosen.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    } catch {
      input.value = "";
      this.#note.textContent = `“${file.name}” ${MESSAGE}`;
    }
  }
}

async function asWav(file) {
  // decodeAudioData resamples to the rate of the context, which plays nothing.
  const context = new OfflineAudioContext(1, 1, RATE);
  const sound = await context.decodeAudioData(await file.arrayBuffer());
  const channels = Array.from({ length: sound.numberOfChannels }, (_, at) =>
    sound.getChannelData(at));
  // All channels: the server chooses the one with the voice.
  const frame = 2 * channels.length;
  const data = new DataView(new ArrayBuffer(44 + frame * sound.length));
  const words = [[0, "RIFF"], [8, "WAVEfmt "], [36, "data"]];
  for (const [at, text] of words) {
    for (let index = 0; index < text.length; index += 1) {
      data.setUint8(at + index, text.charCodeAt(index));
    }
  }
  const header = [[4, 36 + frame * sound.length], [16, 16], [24, RATE], [28, frame * RATE],
                  [40, frame * sound.length]];
  for (const [at, value] of header) data.setUint32(at, value, true);
  // PCM; 16 bits a sample.
  const short = [[20, 1], [22, channels.length], [32, frame], [34, 16]];
  for (const [at, value] of short) data.setUint16(at, value, true);
  for (let index = 0; index < sound.length; index += 1) {
    for (const [at, channel] of channels.entries()) {
      const sample = Math.max(-1, Math.min(1, channel[index]));
      data.setInt16(44 + frame * index + 2 * at, Math.round(32767 * sample), true);
    }
  }
  return new File([data], file.name.replace(/\.[^.]*$/, ".wav"), { type: "audio/wav" });
}
