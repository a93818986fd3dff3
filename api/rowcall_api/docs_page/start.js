"use strict";
// Shows this server's own document.  The key stays in the page's memory: it is gone when you leave the page.
SwaggerUIBundle({
  dom_id: "#page",
  url: "openapi.json",
  deepLinking: true,
  docExpansion: "list",
  displayRequestDuration: true,
  persistAuthorization: false,
  queryConfigEnabled: false,
  tryItOutEnabled: false,
  validatorUrl: null,
});
