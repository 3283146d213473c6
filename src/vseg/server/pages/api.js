// The API page: Swagger UI from this server, which sends the form token with every request.
const token = document.querySelector("meta[name=form-token]").content;
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  validatorUrl: null,
  defaultModelsExpandDepth: -1,
  requestInterceptor: (request) => {
    request.headers["X-CSRF-Token"] = token;
    return request;
  },
});
