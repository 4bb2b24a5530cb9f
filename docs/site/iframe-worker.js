/* The search runs in a worker, and browsers refuse one to pages that are opened from a folder. There a
   hidden frame takes its place: it loads the same script, which finds the functions of a worker. */
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = (this.inside = frame.contentWindow);
      inside.document.open(); // Firefox would replace an empty page that nobody wrote
      inside.document.write("<body>");
      inside.document.close();
      const load = (source) =>
        new Promise((loaded) => {
          const script = inside.document.createElement("script");
          script.src = source;
          script.onload = loaded;
          inside.document.body.append(script);
        });
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...sources) => {
        for (const source of sources) await load(source);
      };
      this.ready = load(address);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
