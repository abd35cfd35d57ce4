self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', event => event.waitUntil(clients.claim()));
self.addEventListener('fetch', event => {
  if (event.request.url.endsWith('?answered')) event.respondWith(new Response('made by the worker'));
  if (event.request.url.endsWith('?passed')) event.respondWith(fetch(event.request));
});
