// Compiles the examples of FirebaseAuth's documentation. DocumentationTests checks that the DocC catalogue
// contains the same code.

import FirebaseAuth
import FirebaseCore
import Foundation

private func configure() {
  let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
  options.projectID = "demo-shop"
  options.apiKey = "any-key"
  FirebaseApp.configure(options: options)
  Auth.auth().useEmulator(withHost: "127.0.0.1", port: 9099)
}

private func useProduction() {
  if let url = URL(string: "https://auth.example.org") { Auth.auth().useServer(at: url) }
}

private func signIn() async throws -> User {
  let created = try await Auth.auth().createUser(withEmail: "lea@example.org", password: "hunter22")
  let user = created.user
  try Auth.auth().signOut()
  try await Auth.auth().signIn(withEmail: "lea@example.org", password: "hunter22")
  return user
}

private func listen() {
  let handle = Auth.auth().addStateDidChangeListener { auth, user in
    print(user?.uid ?? "signed out")
  }
  Auth.auth().removeStateDidChangeListener(handle)
}

private func handleErrors(email: String, password: String) async throws {
  do {
    try await Auth.auth().signIn(withEmail: email, password: password)
  } catch AuthErrorCode.wrongPassword, AuthErrorCode.userNotFound, AuthErrorCode.invalidCredential {
    print("The address or the password is wrong.")
  } catch AuthErrorCode.networkError {
    print("The server cannot be reached.")
  }
}

private func linkGuest(email: String, password: String) async throws {
  let guest = try await Auth.auth().signInAnonymously().user
  let credential = EmailAuthProvider.credential(withEmail: email, password: password)
  try await guest.link(with: credential)
}

private func readClaims(_ user: User) async throws -> String? {
  let token = try await user.getIDTokenResult(forcingRefresh: true)
  let role = token.claims["role"] as? String
  return role
}
