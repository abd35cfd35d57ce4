throw new TypeError('thrown by a script of another site');
