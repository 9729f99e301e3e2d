// gradio's status trackers, which this page hides, count seconds in a loop of animation frames. That
// of the loading screen goes on for as long as the page is open (gradio 6.31), and has it drawn 60
// times a second: a tenth of a core, which the model needs.
{
  const COUNTS_SECONDS = /\(performance\.now\(\)-\w+\(\w+\)\)\/1e3/;
  const request = window.requestAnimationFrame;
  window.requestAnimationFrame = (callback) =>
    COUNTS_SECONDS.test(String(callback)) ? 0 : request.call(window, callback);
}
