const where = self.constructor.name;
function fail() {
  throw new RangeError('thrown in ' + where);
}
new Intl.v8BreakIterator('en');
setTimeout(fail);
Promise.reject(new Error('rejected in ' + where));
