// Compiles the examples of FirebaseCore's documentation. DocumentationTests checks that the DocC catalogue
// contains the same code.

import FirebaseCore

private func configureDefaultApp() {
  let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
  options.projectID = "demo-shop"
  options.databaseURL = "https://demo-shop-default-rtdb.firebaseio.com"
  FirebaseApp.configure(options: options)
}

private func configureNamedApp(_ options: FirebaseOptions) -> FirebaseApp? {
  FirebaseApp.configure(name: "archive", options: options)
  let archive = FirebaseApp.app(name: "archive")
  return archive
}
