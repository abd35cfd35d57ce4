console.log('service worker first line');
self.addEventListener('install', event => event.waitUntil(fetch('/json?from=service')));
