// The API page: Swagger UI from our own files, sending the form token with every call that it makes.
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
