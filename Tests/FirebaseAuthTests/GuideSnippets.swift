// swift-format-ignore-file
// Authentication code of Firebase's guides. Compiling this file is the test; no function is called.

import FirebaseAuth
import FirebaseCore
import Foundation

private final class SignInController {
  var handle: AuthStateDidChangeListenerHandle?
  var names: [String] = []

  func viewWillAppear() {
    handle = Auth.auth().addStateDidChangeListener { auth, user in
      self.names.append(user?.displayName ?? auth.currentUser?.uid ?? "")
    }
  }

  func viewWillDisappear() {
    Auth.auth().removeStateDidChangeListener(handle!)
  }

  func create(email: String, password: String) {
    Auth.auth().createUser(withEmail: email, password: password) { authResult, error in
      if let error = error as NSError?, let code = AuthErrorCode(rawValue: error.code) {
        switch code {
        case .emailAlreadyInUse, .invalidEmail, .weakPassword: self.names.append(error.localizedDescription)
        default: break
        }
      }
      if let user = authResult?.user { self.names.append(user.uid) }
    }
  }

  func signIn(email: String, password: String) {
    Auth.auth().signIn(withEmail: email, password: password) { [weak self] authResult, error in
      guard let strongSelf = self else { return }
      strongSelf.names.append(authResult?.user.email ?? error?.localizedDescription ?? "")
    }
    Auth.auth().signInAnonymously { authResult, error in
      guard let user = authResult?.user else { return }
      let isAnonymous = user.isAnonymous
      self.names.append("\(user.uid) \(isAnonymous)")
    }
  }

  func profile() {
    let user = Auth.auth().currentUser
    if let user = user {
      let uid = user.uid
      let email = user.email
      let photoURL = user.photoURL
      var multiFactorString = "MultiFactor: "
      for info in user.multiFactor.enrolledFactors {
        multiFactorString += info.displayName ?? "[DispayName]"
        multiFactorString += " "
      }
      names += [uid, email ?? "", photoURL?.absoluteString ?? "", multiFactorString]
      for userInfo in user.providerData { names.append(userInfo.providerID) }
    }
    let changeRequest = Auth.auth().currentUser?.createProfileChangeRequest()
    changeRequest?.displayName = "Lea"
    changeRequest?.commitChanges { error in self.names.append(error?.localizedDescription ?? "") }
  }

  func manage(password: String) {
    Auth.auth().currentUser?.sendEmailVerification { error in self.names.append("\(error as Any)") }
    Auth.auth().currentUser?.sendEmailVerification(beforeUpdatingEmail: "a@b.c") { error in _ = error }
    Auth.auth().currentUser?.updatePassword(to: password) { error in _ = error }
    Auth.auth().sendPasswordReset(withEmail: "a@b.c") { error in _ = error }
    let user = Auth.auth().currentUser
    user?.delete { error in
      if error != nil { self.names.append("failed") }
    }
    let credential = EmailAuthProvider.credential(withEmail: "a@b.c", password: password)
    user?.reauthenticate(with: credential) { result, error in _ = (result, error) }
    user?.link(with: credential) { authResult, error in _ = (authResult, error) }
    Auth.auth().currentUser?.unlink(fromProvider: "google.com") { user, error in _ = (user, error) }
    let firebaseAuth = Auth.auth()
    do {
      try firebaseAuth.signOut()
    } catch let signOutError as NSError {
      print("Error signing out: %@", signOutError)
    }
  }

  func emailLink(email: String, link: String) {
    let actionCodeSettings = ActionCodeSettings()
    actionCodeSettings.url = URL(string: "https://www.example.com")
    actionCodeSettings.handleCodeInApp = true
    Auth.auth().sendSignInLink(toEmail: email, actionCodeSettings: actionCodeSettings) { error in
      if let error = error { self.names.append(error.localizedDescription) }
    }
    if Auth.auth().isSignIn(withEmailLink: link) {
      Auth.auth().signIn(withEmail: email, link: link) { user, error in _ = (user, error) }
    }
  }

  func phone(phoneNumber: String) {
    PhoneAuthProvider.provider().verifyPhoneNumber(phoneNumber, uiDelegate: nil) { verificationID, error in
      if let error = error { print(error.localizedDescription) }
      print(verificationID ?? "")
    }
    let credential = PhoneAuthProvider.provider().credential(
      withVerificationID: "id", verificationCode: "123456")
    Auth.auth().signIn(with: credential) { _, _ in }
  }

  func token() {
    let currentUser = Auth.auth().currentUser
    currentUser?.getIDTokenForcingRefresh(true) { idToken, error in
      if let error = error {
        self.names.append(error.localizedDescription)
        return
      }
      self.names.append(idToken ?? "")
    }
    currentUser?.getIDTokenResult(completion: { (result, error) in
      guard let admin = result?.claims["admin"] as? NSNumber else { return }
      if admin.boolValue { self.names.append("admin") }
    })
  }

  func providers(idToken: String, accessToken: String, nonce: String) {
    let google = GoogleAuthProvider.credential(withIDToken: idToken, accessToken: accessToken)
    let apple = OAuthProvider.appleCredential(withIDToken: idToken, rawNonce: nonce, fullName: nil)
    for credential in [google, apple] {
      Auth.auth().signIn(with: credential) { result, error in
        if let error {
          let authError = error as NSError
          if authError.code == AuthErrorCode.secondFactorRequired.rawValue {
            let resolver =
              authError.userInfo[AuthErrorUserInfoMultiFactorResolverKey] as! MultiFactorResolver
            for tmpFactorInfo in resolver.hints { self.names.append(tmpFactorInfo.displayName ?? "") }
          }
          return
        }
        self.names.append(result?.additionalUserInfo?.username ?? "")
      }
    }
  }
}
