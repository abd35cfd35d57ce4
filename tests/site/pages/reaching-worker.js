const reach = async () => {
  const reached = await fetch('{{other}}/json?from=worker', { mode: 'no-cors' }).then(() => 'reached', () => 'refused');
  const socket = new WebSocket('{{other}}/ws'.replace('http', 'ws'));
  const opened = await new Promise((tell) => {
    socket.onopen = () => tell('opened');
    socket.onerror = () => tell('refused');
  });
  return `${reached} ${opened}`;
};
if (self.registration) {
  self.addEventListener('install', (event) => event.waitUntil(reach()));
} else if (self.onconnect !== undefined) {
  self.onconnect = (event) => reach().then((told) => event.ports[0].postMessage(told));
} else {
  reach().then((told) => self.postMessage(told));
}
