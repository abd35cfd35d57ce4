console.log('shared worker first line'); fetch('/json?from=shared');
