// The official web SDK as one bundle: apps, Cloud Firestore for browsers, the Realtime Database for Node.

export * as app from '@firebase/app';
export * as firestore from '@firebase/firestore';
export * as database from '@firebase/database';
