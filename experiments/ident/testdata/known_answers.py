# Prints the known answers of known_test.go: a second, independent reading of
# the definitions in this package. Run with: python3 known_answers.py
import hashlib
import struct

def S(b): return hashlib.sha256(b).digest()
def i(v): return b'i'+struct.pack('>q',v)
def s(v): return b's'+struct.pack('>I',len(v.encode()))+v.encode()
def d(v): return b'd'+struct.pack('>d',v)
def b(v): return b'b'+struct.pack('>Q',len(v))+v
l=lambda *v: b'l'+struct.pack('>I',len(v))+b''.join(v)
def m(x): return b'm'+struct.pack('>I',len(x))+b''.join(s(k)+x[k] for k in sorted(x,key=lambda k:k.encode()))
def H(tag, ce): return S(bytes([len(tag)])+tag.encode()+ce)
n=b'n'
print('null', H('exp/test/1', n).hex())
print('seed', H('exp/seed/1', m({'root':i(7),'label':s('rollout/step=12/prompt=p7/sample=3')}))[:8].hex())
print('seedneg', H('exp/seed/1', m({'root':i(-1),'label':s('')}))[:8].hex())
xid=H('exp/experiment/1', m({'config':m({'algo':m({'kind':s('ppo')}),'lr':d(1e-3),'n':i(8)}),'data':m({'train':b(S(b'train'))}),'weights':n,'tokenizer':b(S(b'tok')),'code':m({'train':b(S(b'code'))})}))
print('xid',xid.hex())
rid=H('exp/run/1', m({'xid':b(xid),'seed':i(3),'numerics':s('cpu/fma')}))
print('rid',rid.hex())
print('sid',H('exp/stage/1', m({'kind':s('train'),'params':m({'steps':i(10)}),'inputs':m({'weights':b(S(b'w'))}),'code':b(S(b'code')),'seed':s('seed=3'),'numerics':s('cpu/fma')})).hex())
leaf=lambda name,dt,shape,data: H('exp/tensor/1', m({'name':s(name),'dtype':s(dt),'shape':l(*[i(k) for k in shape]),'sha256':b(S(data))}))
la=leaf('a','F32',[2],struct.pack('<2f',1.0,-2.0)); lb=leaf('b','BF16',[1,1],struct.pack('<H',0x3f80))
print('weights',H('exp/weights/1', l(b(la),b(lb))).hex())
print('data',H('exp/data/1', m({'count':i(2),'sha256':b(S(m({'id':s('p0')})+m({'id':s('p1')})))})).hex())
print('code',H('exp/code/1', m({'go':s('go1.26.0'),'files':l(l(s('go.sum'),b(S(b'sum'))),l(s('train/rl/gae.go'),b(S(b'gae'))),l(s('train/train.go'),b(S(b'train'))))})).hex())
c0=H('exp/chain/1', b(rid)); print('c0',c0.hex())
bits=lambda v: b(struct.pack('>d',v))
det=lambda p,mm: m({'step':i(1),'items':b(S(b'items')),'tokens':b(S(b'tokens')),'logprobs':b(S(b'lp')),'rewards':b(S(b'r')),'params':p,'metrics':m({k:bits(v) for k,v in mm.items()})})
c1=S(c0+det(n,{'loss':-0.0,'kl':0.25})); print('c1',c1.hex())
print(m({'b':i(1),'a':l(b't',b'f',n,d(0.0),s('é'))}).hex())
