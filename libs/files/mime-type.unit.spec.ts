import { detectMimeType } from './mime-type.ts';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const MPEG_TS = Buffer.alloc(188 * 4, 0xff);
for (let at = 0; at < MPEG_TS.length; at += 188) MPEG_TS.set([0x47, 0x00, 0x11, 0x10], at);
const BINARY = Buffer.from([1, 0, 2, 0, 0, 3]);
const ZIP = Buffer.from('504b0304140000000800', 'hex');

describe('the type of a file', () => {
  it.each([
    ['app.ts', 'const a: number = 1;\n', 'text/x-typescript'],
    ['App.TSX', 'export default 1;\n', 'text/x-typescript'],
    ['a.mts', 'export {};\n', 'text/x-typescript'],
    // G begins each packet of a video, and this text has one where each packet would begin.
    ['g.ts', `G${'x'.repeat(187)}G${'x'.repeat(187)}G`, 'text/x-typescript'],
    ['main.rs', 'fn main() {}\n', 'text/x-rust'],
    ['main.go', 'package main\n', 'text/x-go'],
    ['a.py', 'print(1)\n', 'text/x-python'],
    ['a.kt', 'fun main() {}\n', 'text/x-kotlin'],
    ['a.rb', 'puts 1\n', 'text/x-ruby'],
    ['a.scm', '(define a 1)\n', 'text/x-scheme'],
    ['run.bat', '@echo off\r\n', 'text/x-msdos-batch'],
    ['a.js', 'let a;\n', 'text/javascript'],
    ['a.sh', '#!/bin/sh\n', 'application/x-sh'],
    ['empty.rs', '', 'text/x-rust'],
    ['server.key', '-----BEGIN PRIVATE KEY-----\n', 'text/plain'],
    ['id.pub', 'ssh-ed25519 AAAA\n', 'text/plain'],
    ['a.tex', '\\documentclass{article}\n', 'application/x-tex'],
    ['a.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml'],
    ['package.json', '{}', 'application/json'],
  ])('is by extension for %s of text (%#)', async (name, text, type) => {
    expect(await detectMimeType(Buffer.from(text), name)).toBe(type);
  });

  it.each([
    ['text named as an image', 'x.png', 'just text', 'text/plain'],
    ['text named as a JPEG', 'x.jpg', 'naïve', 'text/plain'],
    ['text named as a PDF', 'x.pdf', 'just text', 'text/plain'],
    ['text named as a document', 'x.docx', 'just text', 'text/plain'],
    ['text named as a sound', 'x.mp3', 'just text', 'text/plain'],
    ['text that begins like a bitmap', 'cars.txt', 'BMW, Audi\n', 'text/plain'],
    ['text that begins like a program', 'a.csv', 'MZ,1\n', 'text/csv'],
    ['a text of DOS', 'a.txt', 'a\r\n\x1a', 'text/plain'],
    ['a table with a NUL', 'a.csv', 'a,b\n1,\0\n', 'text/csv'],
    [
      'an archive of plain text named as text',
      'a.txt',
      `PK\x03\x04\n\0\0\0\0\0${'x'.repeat(9_000)}`,
      'application/zip',
    ],
    ['UTF-16 with a mark', 'a.csv', Buffer.from('\uFEFFa;b\n', 'utf16le'), 'text/csv'],
    ['UTF-16 with a mark, named as a sound', 'a.mp3', Buffer.from('\uFEFFhello', 'utf16le'), 'text/plain'],
    ['text in GBK named as an image', 'x.png', Buffer.from('d6d0cec4b1e0c2eb', 'hex'), 'text/plain'],
    ['an image named as text', 'x.txt', PNG, 'image/png'],
    ['an image named as another', 'x.jpg', PNG, 'image/png'],
    ['a video named .ts', 'x.ts', MPEG_TS, 'video/mp2t'],
    ['bytes named as a program', 'x.ts', BINARY, null],
    ['bytes named as text', 'x.md', BINARY, null],
    ['bytes named as an image', 'x.png', BINARY, null],
    ['bytes named as JSON', 'x.json', BINARY, null],
    ['bytes with a name that is known', 'x.vhd', BINARY, 'application/x-virtualbox-vhd'],
    ['an archive named as a key', 'x.key', ZIP, 'application/zip'],
    ['a PDF that begins with a line break', 'x.pdf', '\n%PDF-1.4\n', 'application/pdf'],
    ['text with a name that is unknown', 'nothing-known', 'just text', null],
  ])('of %s follows from its bytes (%s)', async (_, name, bytes, type) => {
    expect(await detectMimeType(Buffer.from(bytes as string), name)).toBe(type);
  });

  it.each([
    ['image/png', 'just text', 'text/plain'],
    ['image/png', PNG, 'image/png'],
    ['image/jpeg', BINARY, null],
    ['text/csv; charset=utf-8', 'a,b', 'text/csv'],
    ['text/csv', BINARY, null],
    ['application/x-unknown', BINARY, 'application/x-unknown'],
    ['nonsense', 'just text', null],
  ])('is as declared (%s) only if the bytes agree (%#)', async (declared, bytes, type) => {
    expect(await detectMimeType(Buffer.from(bytes as string), 'unnamed', declared)).toBe(type);
  });
});
