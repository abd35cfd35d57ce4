console.log('worker first line'); fetch('/json?from=worker');
